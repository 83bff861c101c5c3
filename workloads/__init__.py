"""What wants to move: tasks, collectives, models and orchestrators."""
