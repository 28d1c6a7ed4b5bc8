#include "proxy/dns/message/message.h"

#include <algorithm>
#include <cstring>

namespace keelson::proxy::dns {
namespace {

constexpr uint16_t kResponse = 0x8000, kAuthoritative = 0x0400, kTruncated = 0x0200;
constexpr uint16_t kRecursionDesired = 0x0100, kRecursionAvailable = 0x0080, kCheckingDisabled = 0x0010;
constexpr size_t kOptSize = 11;
constexpr size_t kFixedSize = 10;       // type, class, TTL and the data's length
constexpr size_t kMaxPointer = 0x3FFF;  // what a compression pointer reaches
constexpr uint16_t kPointer = 0xC000;

}  // namespace

AnswerWriter::AnswerWriter(const Query& query, std::span<char> buffer, size_t limit)
    : query_(query), buffer_(buffer.data()), limit_(std::min(limit, buffer.size())) {
  if (query.edns) limit_ -= kOptSize;
  size_ = kHeaderSize;
  Put(query.question);
  records_begin_ = size_;
}

void AnswerWriter::Put(std::string_view bytes) {
  if (!bytes.empty()) std::memcpy(buffer_ + size_, bytes.data(), bytes.size());
  size_ += bytes.size();
}

void AnswerWriter::Put16(uint16_t value) {
  Set16(buffer_ + size_, value);
  size_ += 2;
}

bool AnswerWriter::Fits(Section section, size_t size) {
  if (!truncated_ && size_ + size <= limit_) return true;
  if (section != Section::kAdditional) truncated_ = true;
  return false;
}

bool AnswerWriter::AddAt(Section section, uint16_t owner_offset, uint16_t type, uint32_t ttl,
                         std::string_view rdata) {
  if (!Fits(section, 2 + kFixedSize + rdata.size())) return false;
  Put16(kPointer | owner_offset);
  Put16(type);
  Put16(kClassIn);
  Set32(buffer_ + size_, ttl);
  size_ += 4;
  Put16(static_cast<uint16_t>(rdata.size()));
  Put(rdata);
  ++counts_[static_cast<size_t>(section)];
  return true;
}

void AnswerWriter::AddRecords(Section section, std::string_view records, size_t size) {
  if (records.empty() || truncated_) return;
  size_t fitting = limit_ > size_ ? (limit_ - size_) / size : 0;
  size_t wanted = records.size() / size;
  if (fitting < wanted && section != Section::kAdditional) truncated_ = true;
  size_t taken = std::min(fitting, wanted);
  Put(records.substr(0, taken * size));
  counts_[static_cast<size_t>(section)] += static_cast<uint16_t>(taken);
}

const AnswerWriter::Known* AnswerWriter::Find(std::string_view name) const {
  for (size_t i = 0; i < known_count_; ++i) {
    if (known_[i].name == name) return &known_[i];
  }
  return nullptr;
}

// The suffixes of a name that stands whole, or up to a pointer, at `offset`.
void AnswerWriter::Learn(std::string_view name, size_t offset) {
  for (std::string_view rest = name; rest.size() > 1; TakeLabel(rest)) {
    size_t at = offset + (name.size() - rest.size());
    if (at > kMaxPointer || known_count_ == known_.size() || Find(rest)) return;
    known_[known_count_++] = {rest, static_cast<uint16_t>(at)};
  }
}

void AnswerWriter::LearnQuestion() {
  if (known_count_ == 0 && !query_.question.empty()) Learn(query_.name(), kHeaderSize);
}

size_t AnswerWriter::NameSize(std::string_view name, bool compress) const {
  if (!compress) return name.size();
  for (std::string_view rest = name; rest.size() > 1; TakeLabel(rest)) {
    if (Find(rest)) return name.size() - rest.size() + 2;
  }
  return name.size();
}

void AnswerWriter::PutName(std::string_view name, bool compress) {
  size_t begin = size_;
  const Known* known = nullptr;
  std::string_view rest = name;
  while (compress && rest.size() > 1 && !(known = Find(rest))) TakeLabel(rest);
  if (!known) {
    Put(name);
  } else {
    Put(name.substr(0, name.size() - rest.size()));
    Put16(kPointer | known->offset);
  }
  Learn(name, begin);
}

bool AnswerWriter::Add(Section section, std::string_view owner, uint16_t type, uint32_t ttl,
                       std::string_view rdata, std::string_view target, bool compress_target) {
  LearnQuestion();
  // A target that shares a suffix with the owner may turn out shorter than this, never longer.
  size_t at_most = NameSize(owner, true) + kFixedSize + rdata.size() + NameSize(target, compress_target);
  if (!Fits(section, at_most)) return false;
  PutName(owner, true);
  Put16(type);
  Put16(kClassIn);
  Set32(buffer_ + size_, ttl);
  size_ += 4;
  size_t length_at = size_;
  size_ += 2;
  Put(rdata);
  if (!target.empty()) PutName(target, compress_target);
  Set16(buffer_ + length_at, static_cast<uint16_t>(size_ - length_at - 2));
  ++counts_[static_cast<size_t>(section)];
  return true;
}

void AnswerWriter::Clear() {
  size_ = records_begin_;
  counts_ = {};
  truncated_ = false;
  known_count_ = 0;
}

void AnswerWriter::Cut() {
  Clear();
  truncated_ = true;
}

size_t AnswerWriter::Finish(Rcode rcode, bool authoritative, bool recursion_available) {
  uint16_t code = static_cast<uint16_t>(rcode);
  uint16_t flags = kResponse | static_cast<uint16_t>(query_.opcode << 11) | (code & 15);
  if (authoritative) flags |= kAuthoritative;
  if (truncated_) flags |= kTruncated;
  if (query_.recursion_desired) flags |= kRecursionDesired;
  if (query_.checking_disabled) flags |= kCheckingDisabled;
  if (recursion_available) flags |= kRecursionAvailable;
  Set16(buffer_, query_.id);
  Set16(buffer_ + 2, flags);
  Set16(buffer_ + 4, query_.question.empty() ? 0 : 1);
  for (size_t i = 0; i < 3; ++i) Set16(buffer_ + 6 + 2 * i, counts_[i]);
  if (query_.edns) {
    Set16(buffer_ + 10, static_cast<uint16_t>(counts_[2] + 1));
    Put(std::string_view("\0", 1));
    Put16(kTypeOpt);
    Put16(kMaxUdpSize);
    Put16(static_cast<uint16_t>((code >> 4) << 8));
    Put16(query_.dnssec_ok ? 0x8000 : 0);
    Put16(0);
  }
  return size_;
}

std::string RecordOf(uint16_t type, uint32_t ttl, std::string_view rdata) {
  std::string out;
  Append16(out, kPointer | AnswerWriter::kQuestionName);
  Append16(out, type);
  Append16(out, kClassIn);
  Append32(out, ttl);
  Append16(out, static_cast<uint16_t>(rdata.size()));
  out += rdata;
  return out;
}

}  // namespace keelson::proxy::dns
