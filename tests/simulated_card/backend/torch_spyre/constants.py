"""Names and figures of the card that several modules share; nothing here has behaviour."""

DEVICE_NAME = "spyre"
BYTES_IN_STICK = 128
STICK = 64  # float16 elements in one stick
FP16_MAX = 65504.0
SPAN_LIMIT = 256 * 1024 * 1024  # bytes that one core can address
CORES = 32

FAULTS_VARIABLE = "SPYRE_SIM_FAULTS"
LIMITS_VARIABLE = "SPYRE_SIM_LIMITS"
DEVICE_VARIABLE = "SPYRE_SIM_DEVICE"
COMPILE_VARIABLE = "SPYRE_SIM_COMPILE"
