"""The flatbuffer that a .tflite file is: read into checked values, and written."""
