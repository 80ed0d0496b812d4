"""The two loops: rounds of sites and hyper-parameters on all rows at once, epochs of batches."""
