"""A few labelled texts that every encoder knows the words of."""

GOOD = ["a wonderful film", "great acting and a moving story", "I loved every minute", "superb , funny and warm"]
BAD = ["a terrible film", "awful acting and a boring story", "I hated every minute", "dull , ugly and cold"]
TEXTS = GOOD * 5 + BAD * 5 + ["a fine evening", "a wasted evening"]
LABELS = ["pos"] * 20 + ["neg"] * 20 + ["pos", "neg"]
