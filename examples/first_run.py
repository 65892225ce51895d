"""
A first run: 569 nodes agree on the AUC
=======================================

569 patients, each known to one node only. Nodes meet in pairs along the edges of a network, swap
copies of rows and average their estimates; in the end each of them knows the AUC over all patients.
"""

import matplotlib.pyplot as plt

import gosta

# %%
# The value that all nodes should find, computed where all rows are in one place:

data = gosta.datasets.load("breast-cancer")
exact = gosta.exact(data, "auc")
print(f"exact AUC: {exact:.4f}")

# %%
# One run on a random network in which a node has four neighbours on average. An iteration is one
# meeting of two neighbours; 100 iterations for each node are 200 meetings of every node.

trace = gosta.simulate(data, "auc", graph="watts-strogatz", runs=1)
print(trace)

# %%
# The estimates of all nodes after 10, 20 and 100 meetings come together at the exact value.

estimates = trace.estimates.isel(run=0)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for checkpoint in (4, 9, 49):
    meetings = 2 * trace.iterations[checkpoint] // len(data)
    values = estimates.isel(iteration=checkpoint)
    left.hist(
        values,
        bins=60,
        range=(exact - 0.06, exact + 0.03),
        alpha=0.6,
        label=f"{meetings} meetings a node",
    )
left.axvline(exact, color="black", linewidth=1)
left.set(
    xlabel="estimate of a node", ylabel="nodes", title="Estimates; the line is the exact value"
)
left.legend(frameon=False)
trace.plot(ax=right)
right.set_title("Error, and its spread over nodes")
plt.show()
