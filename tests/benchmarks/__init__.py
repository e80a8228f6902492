"""The benchmarks: looplatch beside the loop that one writes by hand over the SDK. `make bench` runs them."""
