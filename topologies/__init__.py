"""What is wired: fabrics and their builders."""
