"""What training a recipe will take: time and memory, from the arithmetic, before it starts."""
