"""`Town`: the triangles of everything that does not move, made once and handed out by place."""
