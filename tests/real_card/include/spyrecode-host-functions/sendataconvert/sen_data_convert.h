// Stand-in for deeptools' conversion of constants.
#pragma once
#include <spyrecode-host-functions/sendataconvert/sen_host_ops.h>
#include <standin/numbers.h>
namespace deeptools {
template <typename To, typename From>
To BinaryConvert(From f) {
  static_assert(sizeof(To) == sizeof(From));
  To t;
  std::memcpy(&t, &f, sizeof(t));
  return t;
}
inline uint32_t FloatToFp16Bin(float f) { return standin::to_dl16(f); }
}  // namespace deeptools
