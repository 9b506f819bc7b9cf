"""The experiments of the five source documents; modules begin with the name of their document.

`experiment.py` says what an experiment is, `command.py` runs the programs that measure, `store.py` keeps
what was measured. `printed/` holds the figures that the documents print.
"""
