"""Convolutional networks as data: converted from other forms, run by ONNX Runtime or torch."""
