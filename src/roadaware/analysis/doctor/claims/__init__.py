"""Why claims about scenes score 0: names, frames, pictures, labels and maps that do not fit the truth."""

from roadaware.analysis.doctor.claims.examination import TASKS, examine_claims

__all__ = ["TASKS", "examine_claims"]
