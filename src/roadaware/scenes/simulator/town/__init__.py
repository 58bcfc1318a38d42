"""The town: its layout, what lies where on its ground, and its triangles."""
