#include "lib/dataplane/ebpf_codec.h"

#include <gtest/gtest.h>

namespace keelson::dataplane {
namespace {

IpAddress Ip(const char* text) { return *IpAddress::Parse(text); }
IpPrefix Cidr(const char* text) { return *IpPrefix::Parse(text); }
std::string Hex(const std::string& bytes) {
  std::string out;
  for (unsigned char c : bytes) {
    out += "0123456789abcdef"[c >> 4];
    out += "0123456789abcdef"[c & 15];
  }
  return out;
}

TEST(EbpfCodec, ServiceKeys) {
  struct Case {
    ServiceAddress address;
    const char* bytes;
  };
  for (const Case& c : {
           Case{{Ip("10.96.0.1"), 6, 443}, "00000000000000000000ffff0a60000101bb0600"},
           Case{{Ip("fd96::1"), 17, 53}, "fd96000000000000000000000000000100351100"},
           Case{{std::nullopt, 6, 30080}, "ffffffffffffffffffffffffffffffff75800600"},
           Case{{Ip("10.96.0.1"), 0, 0}, "00000000000000000000ffff0a60000100000000"},
       }) {
    const ServiceKey key = Encode(c.address);
    EXPECT_EQ(Hex(BytesOf(key)), c.bytes);
    EXPECT_EQ(Decode(key), c.address) << c.bytes;
  }
}

TEST(EbpfCodec, Endpoints) {
  for (const char* ip : {"10.1.0.1", "fd01::1", "::1"}) {
    const EndpointAddress address{Ip(ip), 8080};
    EXPECT_EQ(Decode(Encode(address)), address);
  }
  EXPECT_EQ(Hex(BytesOf(Encode(EndpointAddress{Ip("10.1.0.1"), 8080}))),
            "00000000000000000000ffff0a0100011f900000");
}

TEST(EbpfCodec, Ranges) {
  EXPECT_EQ(EncodePodCidr(Cidr("10.244.0.7/24")).bits, 96u + 24);
  EXPECT_EQ(EncodePodCidr(Cidr("fd01::/64")).bits, 64u);
  const ServiceKey service = Encode(ServiceAddress{Ip("198.51.100.7"), 6, 80});
  for (const char* range : {"10.244.0.0/24", "0.0.0.0/0", "203.0.113.5/32", "fd01::/64", "::/0"}) {
    EXPECT_EQ(Decode(EncodePodCidr(Cidr(range))), Cidr(range));
    const SourceRangeKey key = EncodeSourceRange(service, Cidr(range));
    EXPECT_EQ(BytesOf(key.service), BytesOf(service));
    EXPECT_EQ(key.bits, 160 + EncodePodCidr(Cidr(range)).bits);
    EXPECT_EQ(DecodeRange(key), Cidr(range));
  }
  EXPECT_EQ(Decode(EncodePodCidr(Cidr("10.244.0.7/24"))), Cidr("10.244.0.0/24"));
}

TEST(EbpfCodec, BytesOfAnotherSize) {
  EXPECT_TRUE(FromBytes<ServiceKey>(std::string(20, '\0')));
  EXPECT_FALSE(FromBytes<ServiceKey>(std::string(19, '\0')));
  EXPECT_FALSE(FromBytes<ServiceKey>(std::string(21, '\0')));
}

}  // namespace
}  // namespace keelson::dataplane
