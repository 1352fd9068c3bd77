extends Node
# Thirty frames in two phases. Each frame makes some strings, those of the "ai" with a tag.

var frames = 0
var kept = []

func _ready():
	Blockyard.phase("loading")

func _process(_delta):
	frames += 1
	if frames == 10:
		Blockyard.phase("playing")
	Blockyard.tag("ai")
	for number in range(100):
		kept.append("plan %d of frame %d" % [number, frames])
	Blockyard.untag()
	if frames == 30:
		get_tree().quit()
