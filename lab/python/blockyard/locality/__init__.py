"""How long many equal blocks take to allocate and free, and how far apart they lie."""
