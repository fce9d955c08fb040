"""The default model laid out for serving: few bits a number, one compiled call an answer."""
