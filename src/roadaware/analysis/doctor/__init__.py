"""Why is it 0? Checks that turn the usual mistakes in scores, samples and data into words and remedies."""

from roadaware.analysis.doctor.diagnosis import Diagnosis
from roadaware.analysis.doctor.examination import (
    Extraction,
    check_pedestrian_scores,
    check_scene_folder,
    extract_samples,
)

__all__ = ["Diagnosis", "Extraction", "check_pedestrian_scores", "check_scene_folder", "extract_samples"]
