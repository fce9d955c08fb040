"""How good a model is, drawn: one HTML file that needs nothing else.

- `page`: the file, and the tables, figures and sections that it is made of
- `charts`: drawings, which take their colours from the page
- `sections`: what there is to tell of a model: accuracy, probabilities, speed, training, size
- `rows`: tables of metrics, as a terminal shows them, too
- `mistakes`: which answers are worth a look, and which labels are missed
- `answers`: texts, and what was answered, right or wrong
"""
