// Internal to lib/api: the protobuf wire format, and the growing buffer that the transcoders write to.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace keelson::api {

// Appends to a string through raw pointers. The string has its final size once the Sink is destroyed or
// Finish() was called.
class Sink {
 public:
  explicit Sink(std::string& out) : out_(out), start_(out.size()), size_(out.size()) {}
  ~Sink() { Finish(); }
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  size_t size() const { return size_; }
  char* data() { return out_.data(); }
  void Truncate(size_t size) { size_ = size; }
  void Finish() { out_.resize(size_); }

  // Room for `n` more bytes at the returned pointer; Advance() adds them to the output.
  char* Room(size_t n) {
    // Grow by what this Sink wrote, not by what was there before: resize() fills new bytes with zeros.
    if (out_.size() - size_ < n) out_.resize(size_ + n + 512 + (size_ - start_) / 2);
    return out_.data() + size_;
  }
  void Advance(size_t n) { size_ += n; }
  void Put(char c) {
    *Room(1) = c;
    ++size_;
  }
  void Append(std::string_view text) {
    if (text.empty()) return;
    std::memcpy(Room(text.size()), text.data(), text.size());
    size_ += text.size();
  }

 private:
  std::string& out_;
  size_t start_, size_;
};

namespace wire {

enum Type : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

inline bool ReadVarint(const char*& p, const char* end, uint64_t& value) {
  if (p < end && static_cast<signed char>(*p) >= 0) {
    value = static_cast<uint8_t>(*p++);
    return true;
  }
  value = 0;
  for (int shift = 0; shift < 70 && p < end; shift += 7) {
    auto byte = static_cast<uint8_t>(*p++);
    if (shift < 64) value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

// One field on the wire. `number` holds varints and fixed values, `bytes` everything else.
struct Record {
  const char* start;  // of the tag
  uint32_t field;
  uint32_t type;
  uint64_t number;
  std::string_view bytes;
};

// Reads the record at `p`; false for malformed input. Kubernetes uses no groups, so they count as
// malformed.
inline bool ReadRecord(const char*& p, const char* end, Record& record) {
  uint64_t tag;
  record.start = p;
  if (!ReadVarint(p, end, tag) || tag >> 32 != 0 || tag < 8) return false;
  record.field = static_cast<uint32_t>(tag >> 3);
  record.type = static_cast<uint32_t>(tag & 7);
  switch (record.type) {
    case kVarint:
      return ReadVarint(p, end, record.number);
    case kFixed64:
      if (end - p < 8) return false;
      std::memcpy(&record.number, p, 8);
      p += 8;
      return true;
    case kFixed32: {
      if (end - p < 4) return false;
      uint32_t value;
      std::memcpy(&value, p, 4);
      record.number = value;
      p += 4;
      return true;
    }
    case kBytes:
      if (!ReadVarint(p, end, record.number) || record.number > static_cast<uint64_t>(end - p)) return false;
      record.bytes = {p, static_cast<size_t>(record.number)};
      p += record.number;
      return true;
  }
  return false;
}

inline void PutVarint(Sink& out, uint64_t value) {
  char* to = out.Room(10);
  size_t n = 0;
  for (; value >= 0x80; value >>= 7) to[n++] = static_cast<char>(value | 0x80);
  to[n++] = static_cast<char>(value);
  out.Advance(n);
}
inline void PutTag(Sink& out, uint32_t field, Type type) { PutVarint(out, uint64_t{field} << 3 | type); }
inline void PutBytes(Sink& out, uint32_t field, std::string_view bytes) {
  PutTag(out, field, kBytes);
  PutVarint(out, bytes.size());
  out.Append(bytes);
}
inline void PutInt(Sink& out, uint32_t field, uint64_t value) {
  PutTag(out, field, kVarint);
  PutVarint(out, value);
}

// A length-delimited record whose length is known only at its end. Begin() reserves one byte; End() moves
// the contents up when the length needs more.
struct Open {
  size_t rollback;  // before the tag
  size_t start;     // of the contents
};
inline Open Begin(Sink& out, uint32_t field) {
  size_t rollback = out.size();
  PutTag(out, field, kBytes);
  out.Put(0);
  return {rollback, out.size()};
}
inline void End(Sink& out, const Open& open) {
  size_t length = out.size() - open.start;
  if (length < 0x80) {
    out.data()[open.start - 1] = static_cast<char>(length);
    return;
  }
  size_t extra = 0;
  for (size_t rest = length >> 7; rest != 0; rest >>= 7) ++extra;
  out.Room(extra);
  std::memmove(out.data() + open.start + extra, out.data() + open.start, length);
  out.Truncate(open.start - 1);
  PutVarint(out, length);
  out.Advance(length);
}

}  // namespace wire
}  // namespace keelson::api
