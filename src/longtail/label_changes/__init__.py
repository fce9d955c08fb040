"""Labels added to and removed from a trained model, which is not trained again."""
