// HTTP/2 from a client: frames in any order with any contents.
#include <fmt/format.h>

#include "lib/http/testing/hostile_peer.h"
#include "lib/http/testing/http2_probe.h"
#include "tests/fuzz/fuzz.h"

namespace keelson::fuzz {
namespace {

constexpr size_t kMaxFrame = 16 << 10;

// The input follows the preface, so that every byte belongs to a frame.
void Http2(std::string_view input) {
  http::ProbeResult result =
      http::ProbeHttp2(http::kHttp2Preface + std::string(input), [](auto request, auto writer) {
        writer->Reply(200, {{"X-Path", request->raw_path}}, request->method + request->body);
      });
  FUZZ_CHECK(result.gone, input);
  // The output is whole frames of valid sizes, starting with SETTINGS.
  size_t count = 0;
  while (auto frame = http::TakeFrame(result.answer)) {
    FUZZ_CHECK(count++ > 0 || frame->type == http::kSettings, input);
    FUZZ_CHECK(frame->payload.size() <= kMaxFrame, input);
  }
  FUZZ_CHECK(result.answer.empty(), fmt::format("{} bytes are no frame", result.answer.size()));
}

const Registration kHttp2("http2", Http2);

}  // namespace
}  // namespace keelson::fuzz
