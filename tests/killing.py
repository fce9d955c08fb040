"""A training that is killed."""

from __future__ import annotations


class Killer:
    """A callback that kills training after an epoch, of one stage or of whichever comes first."""

    def __init__(self, epoch, stage=None):
        self.epoch, self.stage = epoch, stage

    def on_stage(self, stage, seconds):
        pass

    def on_batch(self, stage, done, total, loss):
        pass

    def on_epoch(self, report):
        if report.epoch == self.epoch and self.stage in {None, report.stage}:
            raise KeyboardInterrupt


class Batches:
    """A callback that counts batches: of a training that goes on there are fewer."""

    def __init__(self):
        self.n = 0

    def on_stage(self, stage, seconds):
        pass

    def on_batch(self, stage, done, total, loss):
        self.n += 1

    def on_epoch(self, report):
        pass
