"""Tell whether a vision-language model can reason like a neurologist, or only classifies."""
