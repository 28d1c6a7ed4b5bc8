#include "lib/dataplane/nftables_elements.h"

#include <cstring>
#include <string_view>

namespace keelson::dataplane {
namespace {

// Reads what nft::Key has written, part by part.
class PartReader {
 public:
  PartReader(std::string_view bytes, bool v4) : bytes_(bytes), v4_(v4) {}
  IpAddress Ip() { return IpAddress::FromBytes(Take(v4_ ? 4 : 16)); }
  uint8_t Proto() { return static_cast<uint8_t>(Take(4)[0]); }
  uint16_t Port() {
    const std::string_view part = Take(4);
    return static_cast<uint16_t>(static_cast<uint8_t>(part[0]) << 8 | static_cast<uint8_t>(part[1]));
  }
  uint32_t Mark() {
    uint32_t out = 0;
    std::memcpy(&out, Take(4).data(), sizeof out);
    return out;
  }

 private:
  std::string_view Take(size_t size) {
    static constexpr char kZeros[16] = {};
    if (size > bytes_.size()) return {kZeros, size};
    const std::string_view out = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return out;
  }
  std::string_view bytes_;
  const bool v4_;
};

}  // namespace

std::string ServiceElement(const ServiceAddress& service) {
  nft::Key key;
  if (service.ip) key.Ip(*service.ip);
  return key.Proto(service.protocol).Port(service.port).bytes();
}

std::string EndpointElement(const std::string& service, uint32_t slot) {
  return service + nft::Key().Mark(slot).bytes();
}

std::string EndpointData(const EndpointAddress& endpoint) {
  return nft::Key().Ip(endpoint.ip).Port(endpoint.port).bytes();
}

DecodedElement DecodeElement(const std::string& key, bool v4, bool node_port) {
  PartReader reader(key, v4);
  DecodedElement out;
  if (!node_port) out.service.ip = reader.Ip();
  out.service.protocol = reader.Proto();
  out.service.port = reader.Port();
  out.slot = reader.Mark();
  return out;
}

EndpointAddress DecodeEndpointData(const std::string& data, bool v4) {
  PartReader reader(data, v4);
  EndpointAddress out;
  out.ip = reader.Ip();
  out.port = reader.Port();
  return out;
}

}  // namespace keelson::dataplane
