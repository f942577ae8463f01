package arm
