"""`python -m benchmarks.mutation`: small faults in statistics and metrics that tests must find."""
