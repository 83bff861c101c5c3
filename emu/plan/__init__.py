"""Before any lab is built: which scale fits, and how long it will take."""
