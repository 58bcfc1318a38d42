"""Tables in the objects and folders of other libraries: one file each, and one seam through which they are imported."""
