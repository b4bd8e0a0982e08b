"""Labelled texts from files, folders, packages and tensorflow-datasets.

A new source is one function in :mod:`textkernels.datasets.sources` (or a module beside it) and one row in
:func:`textkernels.datasets.dataset.load`.
"""

from textkernels.datasets.dataset import Dataset, load

__all__ = ["Dataset", "load"]
