#include "proxy/announce/frames.h"

#include <gtest/gtest.h>

namespace keelson::proxy {
namespace {

using netlink::MacAddress;

std::string FromHex(std::string_view hex) {
  std::string out, digits;
  for (char c : hex) {
    if (c == ' ') continue;
    digits += c;
    if (digits.size() < 2) continue;
    out += static_cast<char>(std::stoi(digits, nullptr, 16));
    digits.clear();
  }
  return out;
}
std::string Hex(std::string_view bytes) {
  std::string out;
  char two[3];
  for (unsigned char c : bytes) {
    std::snprintf(two, sizeof two, "%02x", c);
    out += two;
  }
  return out;
}

const MacAddress kOurs({2, 0, 0, 0, 0, 1});

// As the kernel sends them.
const char kArpRequest[] =
    "ffffffffffff 0a0000000009 0806 0001 0800 06 04 0001 0a0000000009 c0000209 000000000000 c0000264";
const char kSolicitation[] =
    "3333ff000064 0a0000000009 86dd 60000000 0020 3a ff fd000000000000000000000000000009 "
    "ff0200000000000000000001ff000064 8700 74c3 00000000 fd000000000000000000000000000064 01 01 0a0000000009";

TEST(FramesTest, ArpRequestAndReply) {
  auto question = ParseQuestion(FromHex(kArpRequest));
  ASSERT_TRUE(question);
  EXPECT_EQ(question->target.ToString(), "192.0.2.100");
  EXPECT_EQ(question->asker.ToString(), "192.0.2.9");
  EXPECT_EQ(question->asker_mac.ToString(), "0a:00:00:00:00:09");
  EXPECT_EQ(Hex(AnswerTo(*question, kOurs)),
            Hex(FromHex("0a0000000009 020000000001 0806 0001 0800 06 04 0002 "
                        "020000000001 c0000264 0a0000000009 c0000209")));
}

TEST(FramesTest, SolicitationAndAdvertisement) {
  auto question = ParseQuestion(FromHex(kSolicitation));
  ASSERT_TRUE(question);
  EXPECT_EQ(question->target.ToString(), "fd00::64");
  EXPECT_EQ(question->asker.ToString(), "fd00::9");
  EXPECT_EQ(question->asker_mac.ToString(), "0a:00:00:00:00:09");
  const std::string answer = AnswerTo(*question, kOurs);
  // All but the checksum, which the kernel judges in announcer_netns_test.
  std::string unsummed = answer;
  unsummed.replace(14 + 40 + 2, 2, 2, '\0');
  EXPECT_EQ(Hex(unsummed),
            Hex(FromHex("0a0000000009 020000000001 86dd 60000000 0020 3a ff fd000000000000000000000000000064 "
                        "fd000000000000000000000000000009 8800 0000 60000000 "
                        "fd000000000000000000000000000064 02 01 020000000001")));
}

TEST(FramesTest, WhoHasNoAddressYetIsToldWithAll) {
  NeighborQuestion question{.target = *IpAddress::Parse("fd00::64"), .asker = *IpAddress::Parse("::")};
  EXPECT_EQ(AnswerTo(question, kOurs), Announcement(question.target, kOurs, false));
}

TEST(FramesTest, Announcements) {
  const IpAddress ip = *IpAddress::Parse("192.0.2.100");
  EXPECT_EQ(Hex(Announcement(ip, kOurs, true)),
            Hex(FromHex("ffffffffffff 020000000001 0806 0001 0800 06 04 0001 "
                        "020000000001 c0000264 000000000000 c0000264")));
  EXPECT_EQ(Hex(Announcement(ip, kOurs, false)),
            Hex(FromHex("ffffffffffff 020000000001 0806 0001 0800 06 04 0002 "
                        "020000000001 c0000264 ffffffffffff c0000264")));
  EXPECT_EQ(Hex(Announcement(*IpAddress::Parse("fd00::64"), kOurs, false)).substr(0, 24),
            "333300000001020000000001");
}

TEST(FramesTest, Groups) {
  const IpAddress group = SolicitedNodeAddress(*IpAddress::Parse("fd00::12:3456"));
  EXPECT_EQ(group.ToString(), "ff02::1:ff12:3456");
  EXPECT_EQ(MulticastMac(group).ToString(), "33:33:ff:12:34:56");
}

TEST(FramesTest, Claims) {
  auto check = [](std::string_view frame, const char* address, const char* mac) {
    auto claim = ParseClaim(frame);
    ASSERT_TRUE(claim);
    EXPECT_EQ(claim->address.ToString(), address);
    EXPECT_EQ(claim->mac.ToString(), mac);
  };
  const IpAddress v4 = *IpAddress::Parse("192.0.2.100"), v6 = *IpAddress::Parse("fd00::64");
  for (bool request : {false, true}) {
    check(Announcement(v4, kOurs, request), "192.0.2.100", "02:00:00:00:00:01");
    check(Announcement(v6, kOurs, request), "fd00::64", "02:00:00:00:00:01");
  }
  check(FromHex(kArpRequest), "192.0.2.9", "0a:00:00:00:00:09");
  EXPECT_FALSE(ParseClaim(FromHex(kSolicitation)));
}

// With the checksum that an ICMPv6 message should have.
std::string Summed(std::string frame) {
  frame[56] = frame[57] = 0;
  uint32_t sum = 58 + static_cast<uint32_t>(frame.size() - 54);
  for (size_t i = 22; i + 1 < frame.size(); i += 2) {
    sum += static_cast<uint32_t>(static_cast<uint8_t>(frame[i]) << 8 | static_cast<uint8_t>(frame[i + 1]));
  }
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  sum = ~sum;
  frame[56] = static_cast<char>(sum >> 8);
  frame[57] = static_cast<char>(sum);
  return frame;
}

TEST(FramesTest, WhatIsNoQuestionIsIgnored) {
  ASSERT_EQ(Summed(FromHex(kSolicitation)), FromHex(kSolicitation));
  for (const char* good : {kArpRequest, kSolicitation}) {
    const std::string frame = FromHex(good);
    for (size_t size = 0; size < frame.size(); ++size) {
      EXPECT_FALSE(ParseQuestion(std::string_view(frame).substr(0, size))) << size;
    }
  }
  struct Case {
    const char* what;
    const char* frame;
    size_t at;
    uint8_t value;
  };
  const Case cases[] = {
      {"an ARP reply", kArpRequest, 21, 2},
      {"not IPv4", kArpRequest, 16, 9},
      {"long hardware addresses", kArpRequest, 18, 8},
      {"another protocol", kSolicitation, 13, 0},
      {"not ICMPv6", kSolicitation, 20, 17},
      {"from behind a router", kSolicitation, 21, 254},
      {"an advertisement", kSolicitation, 54, 136},
      {"a bad checksum", kSolicitation, 57, 0},
      {"a code", kSolicitation, 55, 1},
      {"an option of no length", kSolicitation, 79, 0},
      {"an option that is too long", kSolicitation, 79, 9},
      {"a length beyond the frame", kSolicitation, 19, 0x40},
      {"a length short of the target", kSolicitation, 19, 16},
  };
  for (const Case& one : cases) {
    std::string frame = FromHex(one.frame);
    frame[one.at] = static_cast<char>(one.value);
    if (one.frame == kSolicitation && one.at != 57) frame = Summed(std::move(frame));
    EXPECT_FALSE(ParseQuestion(frame)) << one.what;
  }
}

}  // namespace
}  // namespace keelson::proxy
