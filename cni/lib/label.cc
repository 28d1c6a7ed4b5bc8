#include "cni/lib/label.h"

#include <cstdio>

namespace keelson::cni {
namespace {

uint64_t Hash(std::string_view text) {
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (unsigned char c : text) hash = (hash ^ c) * 1099511628211u;
  return hash;
}

std::string Cut(const std::string& text, size_t limit) {
  if (text.size() <= limit) return text;
  char tail[18];
  std::snprintf(tail, sizeof tail, "~%016llx", static_cast<unsigned long long>(Hash(text)));
  return text.substr(0, limit - 17) + tail;
}

// Network names, container ids and interface names contain no slash.
std::string Prefix(const std::string& network) { return Cut(network, 36) + "/"; }

}  // namespace

std::string LabelOf(const std::string& network, const Attachment& attachment) {
  return Prefix(network) + Cut(attachment.container_id, 66) + "/" + attachment.ifname;
}

StaleLabels::StaleLabels(const Request& request) : prefix_(Prefix(request.network)) {
  for (const Attachment& attachment : request.valid_attachments) {
    valid_.insert(LabelOf(request.network, attachment));
  }
}

bool StaleLabels::Contains(std::string_view label) const {
  return label.starts_with(prefix_) && !valid_.contains(label);
}

std::string ShortHash(std::string_view text) {
  uint64_t hash = Hash(text);
  char out[9];
  std::snprintf(out, sizeof out, "%08x", static_cast<uint32_t>(hash ^ (hash >> 32)));
  return out;
}

}  // namespace keelson::cni
