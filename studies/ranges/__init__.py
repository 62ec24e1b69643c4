"""How far does a range reach, what does it gain, and what does it cost?"""
