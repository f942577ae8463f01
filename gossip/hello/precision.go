package hello

// Precision classes, as headers carry them. What each is worth in the weight
// of a delta is the outer step's to say. 0 is no class.
const (
	ClassF32  uint8 = 1
	ClassBF16 uint8 = 2
	ClassF16  uint8 = 3
	ClassInt8 uint8 = 4
)

// PrecisionClass returns the class that a learner's deltas carry for the
// precision named in its record.
func PrecisionClass(name string) (uint8, error) {
	switch name {
	case "f32":
		return ClassF32, nil
	case "bf16":
		return ClassBF16, nil
	case "f16":
		return ClassF16, nil
	case "int8":
		return ClassInt8, nil
	}
	return 0, invalid("precision", name, "f32, bf16, f16 or int8")
}
