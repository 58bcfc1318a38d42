"""Files that are whole or not there, archives, strict JSON, XML, CSV and pickles, processes:
nothing of roads.
"""
