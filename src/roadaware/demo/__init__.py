"""`roadaware demo`: a program that takes every step of the command line once, on synthetic or on real data."""
