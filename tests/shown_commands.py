"""The commands that a page shows, in a line of text or in a block."""

from __future__ import annotations

import re


def commands_shown(page: str, program: str) -> list[str]:
    """Return the commands of a program, without remarks and without what follows a pipe."""
    text = page.replace("\\\n", " ")
    within = re.findall(rf"`({program}[^`]+)`", text)
    lines = re.findall(rf"^ *(?:\$ )?({program}.+)$", text, re.MULTILINE)
    parts = (part for shown in within + lines for part in re.split(r"\||&&|;|  #", shown))
    words = (" ".join(part.split()) for part in parts)
    return [command for command in words if re.match(program, command)]


def options_of(command: str) -> set[str]:
    """Return the options in a command, or in what --help says."""
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", command))
