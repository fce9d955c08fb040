"""The tables of the DeepXML paper as commands."""
