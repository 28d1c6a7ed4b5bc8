#include "lib/k8s/text/pem.h"

#include <cstdint>

#include "lib/base/base64.h"

namespace keelson::k8s {

namespace {

constexpr uint8_t kInteger = 0x02, kBitString = 0x03, kSequence = 0x30;
constexpr uint8_t kContext0 = 0xa0;

// One element of DER: takes it off `der`; nullopt when it is cut or not canonical.
struct Element {
  uint8_t tag;
  std::string_view content;
};
std::optional<Element> Take(std::string_view& der) {
  const auto at = [&](size_t i) { return static_cast<uint8_t>(der[i]); };
  if (der.size() < 2) return std::nullopt;
  const uint8_t tag = at(0);
  size_t length = at(1), header = 2;
  if (length >= 0x80) {
    const size_t octets = length & 0x7f;
    if (octets == 0 || octets > 4 || der.size() < 2 + octets) return std::nullopt;
    length = 0;
    for (size_t i = 0; i < octets; ++i) length = length << 8 | at(2 + i);
    header += octets;
    if (length < 0x80) return std::nullopt;
  }
  if (der.size() - header < length) return std::nullopt;
  Element element{tag, der.substr(header, length)};
  der.remove_prefix(header + length);
  return element;
}

bool TakeTag(std::string_view& der, uint8_t tag) {
  const std::optional<Element> element = Take(der);
  return element && element->tag == tag;
}

// SEQUENCE { body SEQUENCE, algorithm SEQUENCE, signature BIT STRING } and nothing after it.
std::optional<std::string_view> SignedBody(std::string_view der) {
  const std::optional<Element> outer = Take(der);
  if (!outer || outer->tag != kSequence || !der.empty()) return std::nullopt;
  std::string_view parts = outer->content;
  const std::optional<Element> body = Take(parts);
  if (!body || body->tag != kSequence) return std::nullopt;
  if (!TakeTag(parts, kSequence) || !TakeTag(parts, kBitString) || !parts.empty()) return std::nullopt;
  return body->content;
}

}  // namespace

std::optional<PemBlock> NextPemBlock(std::string_view& text) {
  constexpr std::string_view kBegin = "-----BEGIN ", kEnd = "-----END ", kDashes = "-----";
  for (;;) {
    const size_t begin = text.find(kBegin);
    if (begin == std::string_view::npos) return std::nullopt;
    const bool starts_line = begin == 0 || text[begin - 1] == '\n';
    text.remove_prefix(begin + kBegin.size());
    const size_t type_end = text.find(kDashes);
    if (!starts_line || type_end == std::string_view::npos) continue;
    PemBlock block;
    block.type = std::string(text.substr(0, type_end));
    if (block.type.find('\n') != std::string::npos) continue;
    const std::string footer = std::string(kEnd) + block.type + std::string(kDashes);
    const size_t end = text.find(footer);
    if (end == std::string_view::npos) continue;
    std::string_view content = text.substr(type_end + kDashes.size(), end - type_end - kDashes.size());
    while (content.find(':') != std::string_view::npos) {
      block.has_headers = true;
      const size_t line = content.find('\n', content.find(':'));
      if (line == std::string_view::npos) break;
      content.remove_prefix(line + 1);
    }
    text.remove_prefix(end + footer.size());
    Result<std::string> bytes = DecodeBase64(content, Base64::kStd, " \t\r\n");
    if (!bytes) continue;
    block.bytes = std::move(*bytes);
    return block;
  }
}

bool IsCertificateRequest(std::string_view der) {
  std::optional<std::string_view> body = SignedBody(der);
  // version, subject, public key, [attributes]
  if (!body || !TakeTag(*body, kInteger) || !TakeTag(*body, kSequence) || !TakeTag(*body, kSequence)) {
    return false;
  }
  return body->empty() || (TakeTag(*body, kContext0) && body->empty());
}

bool IsCertificate(std::string_view der) {
  std::optional<std::string_view> body = SignedBody(der);
  if (!body) return false;
  if (!body->empty() && static_cast<uint8_t>(body->front()) == kContext0 && !TakeTag(*body, kContext0)) {
    return false;
  }
  if (!TakeTag(*body, kInteger)) return false;
  // signature algorithm, issuer, validity, subject, public key; then optional parts
  for (int i = 0; i < 5; ++i) {
    if (!TakeTag(*body, kSequence)) return false;
  }
  return true;
}

std::string PemText(std::string_view type, std::string_view der) {
  constexpr size_t kLine = 64;
  const std::string encoded = EncodeBase64(der);
  std::string out = "-----BEGIN " + std::string(type) + "-----\n";
  for (size_t at = 0; at < encoded.size(); at += kLine) out += encoded.substr(at, kLine) + "\n";
  return out + "-----END " + std::string(type) + "-----\n";
}

}  // namespace keelson::k8s
