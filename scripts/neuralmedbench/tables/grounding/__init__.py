"""Did the picture cause the answer? What answers do when pictures are exchanged, emptied, mirrored or left out."""
