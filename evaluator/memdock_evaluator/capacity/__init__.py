"""How time and money of evaluations grow, by a simulation of discrete events; validated by `bench.bench_capacity`."""
