"""What a run needs and takes: memory, time and cost from stated formulas, and a simulation of the compiled graph."""
