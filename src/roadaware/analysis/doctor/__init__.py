"""Why is it 0? Checks that turn the usual mistakes in scores, samples and data into words and remedies."""

from roadaware.analysis.doctor.diagnosis import Diagnosis
from roadaware.analysis.doctor.examination import Extraction, examine_pedestrians, examine_scenes

__all__ = ["Diagnosis", "Extraction", "examine_pedestrians", "examine_scenes"]
