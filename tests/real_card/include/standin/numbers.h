// The card's 16-bit float: 1 sign, 6 exponent (bias 31), 9 fraction bits; no subnormals, exponent 0 is an ordinary exponent, all
// zeros is zero, all ones is the one code for infinity and not-a-number; ties are rounded away from zero. ../../README.md: sources.
// No evidence: what reading that code gives. Here it is an infinity of its sign; public models say either infinity or NaN.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

namespace standin {
inline uint32_t bits_of(float f) { uint32_t b; std::memcpy(&b, &f, 4); return b; }
inline float float_of(uint32_t b) { float f; std::memcpy(&f, &b, 4); return f; }

inline uint16_t to_dl16(float f) {
  uint32_t b = bits_of(f), sign = (b >> 16) & 0x8000u, a = b & 0x7fffffffu;
  if (a >= 0x7f800000u) return static_cast<uint16_t>(sign | 0x7fffu);
  int64_t v = ((static_cast<int64_t>(a) + 0x2000) >> 14) - ((127 - 31) << 9);
  if (v <= 0) return static_cast<uint16_t>(sign);
  return static_cast<uint16_t>(sign | (v > 0x7fff ? 0x7fff : v));
}
inline float from_dl16(uint16_t c) {
  uint32_t sign = static_cast<uint32_t>(c & 0x8000u) << 16, v = c & 0x7fffu;
  if (v == 0) return float_of(sign);
  if (v == 0x7fff) return float_of(sign | 0x7f800000u);
  return float_of(sign | ((v + ((127 - 31) << 9)) << 14));
}

inline uint16_t to_half(float f) {
  uint32_t b = bits_of(f), sign = (b >> 16) & 0x8000u, a = b & 0x7fffffffu;
  if (a > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  if (a >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (a < 0x38800000u) return static_cast<uint16_t>(sign | static_cast<uint32_t>(std::nearbyint(std::ldexp(float_of(a), 24))));
  return static_cast<uint16_t>(sign | ((a + 0xfff + ((a >> 13) & 1) - 0x38000000u) >> 13));
}
inline float from_half(uint16_t c) {
  uint32_t sign = static_cast<uint32_t>(c & 0x8000u) << 16, e = (c >> 10) & 31, m = c & 0x3ffu;
  if (e == 31) return float_of(sign | 0x7f800000u | (m << 13));
  if (e == 0) return std::copysign(std::ldexp(static_cast<float>(m), -24), float_of(sign | 0x3f800000u));
  return float_of(sign | ((e + 112) << 23) | (m << 13));
}

inline uint16_t to_bfloat(float f) {
  uint32_t b = bits_of(f);
  if ((b & 0x7fffffffu) > 0x7f800000u) return 0x7fc0;
  return static_cast<uint16_t>((b + 0x7fff + ((b >> 16) & 1)) >> 16);
}
inline float from_bfloat(uint16_t c) { return float_of(static_cast<uint32_t>(c) << 16); }
}  // namespace standin
