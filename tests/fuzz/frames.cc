// Ethernet frames from neighbors.
#include "proxy/announce/frames.h"

#include <algorithm>
#include <cstdint>

#include "tests/fuzz/fuzz.h"

namespace keelson::fuzz {
namespace {

using namespace proxy;

const netlink::MacAddress kOurs({2, 0, 0, 0, 0, 1});

void Check(std::string_view frame) {
  auto question = ParseQuestion(frame);
  if (!question) {
    (void)ParseClaim(frame);
    return;
  }
  FUZZ_CHECK(question->target.is_v4() == question->asker.is_v4(), frame);
  // A reply has the address that was asked for, and is not a request.
  const std::string answer = AnswerTo(*question, kOurs);
  auto claim = ParseClaim(answer);
  FUZZ_CHECK(claim && claim->address == question->target && claim->mac == kOurs, frame);
  FUZZ_CHECK(!ParseQuestion(answer), frame);
}

// Also tries each input with a valid checksum, to reach the code behind it.
std::string Summed(std::string frame) {
  if (frame.size() < 78) return frame;
  const size_t length = std::min<size_t>(frame.size() - 54, static_cast<uint8_t>(frame[19]));
  frame[18] = 0;
  frame[19] = static_cast<char>(length);
  frame[20] = 58;
  frame[56] = frame[57] = 0;
  uint32_t sum = 58 + static_cast<uint32_t>(length);
  for (size_t i = 22; i < 54 + length; ++i) {
    sum += static_cast<uint32_t>(static_cast<uint8_t>(frame[i])) << (i % 2 ? 0 : 8);
  }
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  frame[56] = static_cast<char>(~sum >> 8);
  frame[57] = static_cast<char>(~sum);
  return frame;
}

void NeighborFrame(std::string_view input) {
  Check(input);
  Check(Summed(std::string(input)));
}

const Registration kFrame("neighbor_frame", NeighborFrame);

}  // namespace
}  // namespace keelson::fuzz
