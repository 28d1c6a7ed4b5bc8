// Network input: HTTP/1.1 messages, WebSocket frames, SPDY frames. The result does not depend on how the
// bytes are split.
#include <vector>

#include <fmt/format.h>

#include "lib/http/http1_parser.h"
#include "lib/http/streaming/channels.h"
#include "lib/http/streaming/spdy.h"
#include "lib/http/streaming/websocket.h"
#include "tests/fuzz/fuzz.h"

namespace keelson::fuzz {
namespace {

using http::Http1Parser;

constexpr size_t kPieces[] = {1, 7, 4096};
constexpr const char* kError = "error";

// `read(input, size)` returns a description of the result when the input arrives in pieces of that size.
void SameInPieces(std::string_view input, std::string (*read)(std::string_view, size_t)) {
  std::string whole = read(input, input.size() + 1);
  for (size_t size : kPieces) {
    std::string pieces = read(input, size);
    // A head that is never complete may be found wrong at once, or be waited for.
    const bool same = pieces == whole || pieces + kError == whole || pieces == whole + kError;
    FUZZ_CHECK(same, fmt::format("in pieces of {}:\n{}\nwhole:\n{}", size, pieces, whole));
  }
}

template <Http1Parser::Role role>
std::string ReadHttp1(std::string_view input, size_t size) {
  std::string body, seen, pending;
  Http1Parser parser(role, {8 << 10, 64 << 10}, [&](std::string_view piece) { body += piece; });
  auto tell = [&] {
    http::MessageHead& head = parser.head();
    seen += fmt::format("{} {} {} {}\n", head.method, head.target, head.status, head.version);
    for (const auto& [name, value] : head.headers) seen += name + ": " + value + "\n";
    seen += "\n" + body + "\n";
  };
  for (size_t at = 0; at < input.size(); at += size) {
    pending += input.substr(at, size);
    while (!pending.empty()) {
      Result<size_t> used = parser.Feed(pending);
      if (!used) return seen + kError;
      FUZZ_CHECK(*used <= pending.size(), input);
      pending.erase(0, *used);
      if (!parser.done()) {
        if (*used == 0) break;
        continue;
      }
      tell();
      // What follows an upgrade is not HTTP.
      if (parser.head().upgrade) {
        return seen + pending + std::string(input.substr(std::min(input.size(), at + size)));
      }
      body.clear();
      parser.Reset();
    }
  }
  return seen;
}

std::string ReadWebSocket(std::string_view input, size_t size) {
  std::string seen, message;
  http::WsParser parser(
      {.on_data =
           [&](std::string_view bytes, bool first, bool last) {
             if (first) message.clear();
             message += bytes;
             if (last) seen += "message " + message + "\n";
           },
       .on_ping = [&](std::string_view payload) { seen += fmt::format("ping {}\n", payload); },
       .on_close = [&] { seen += "close\n"; }});
  for (size_t at = 0; at < input.size() && !parser.closed(); at += size) {
    if (!parser.Feed(input.substr(at, size))) return seen + kError;
  }
  return seen;
}

template <bool base64>
std::string ReadChannels(std::string_view input, size_t size) {
  std::string seen;
  Result<> read;
  std::map<int, std::string> channels;
  http::ChannelReader reader({.name = "x", .base64 = base64});
  http::WsParser parser({.on_data =
                             [&](std::string_view bytes, bool first, bool last) {
                               if (!read) return;
                               read = reader.Feed(bytes, first, last,
                                                  [&](unsigned char channel, std::string_view data) {
                                                    channels[channel] += data;
                                                  });
                             },
                         .on_ping = [](std::string_view) {},
                         .on_close = [] {}});
  for (size_t at = 0; at < input.size() && read && !parser.closed(); at += size) {
    if (!parser.Feed(input.substr(at, size))) break;
  }
  for (const auto& [channel, bytes] : channels) seen += fmt::format("{}: {}\n", channel, bytes);
  return seen + (read ? "" : kError);
}

std::string ReadSpdy(std::string_view input, size_t size) {
  std::string seen, data;
  uint32_t of = 0;
  auto flush = [&] {
    if (!data.empty()) seen += fmt::format("data {} {}\n", of, data);
    data.clear();
  };
  http::SpdyParser parser({.on_reply =
                               [&](uint32_t id) {
                                 flush();
                                 seen += fmt::format("reply {}\n", id);
                               },
                           .on_data =
                               [&](uint32_t id, std::string_view bytes, bool fin) {
                                 if (id != of) flush();
                                 of = id;
                                 data += bytes;
                                 if (!fin) return;
                                 flush();
                                 seen += fmt::format("fin {}\n", id);
                               },
                           .on_reset =
                               [&](uint32_t id) {
                                 flush();
                                 seen += fmt::format("reset {}\n", id);
                               },
                           .on_ping =
                               [&](uint32_t id) {
                                 flush();
                                 seen += fmt::format("ping {}\n", id);
                               },
                           .on_goaway =
                               [&] {
                                 flush();
                                 seen += "goaway\n";
                               }});
  for (size_t at = 0; at < input.size(); at += size) {
    if (parser.Feed(input.substr(at, size))) continue;
    flush();
    return seen + kError;
  }
  flush();
  return seen;
}

void Http1Request(std::string_view input) { SameInPieces(input, ReadHttp1<Http1Parser::Role::kRequest>); }
void Http1Response(std::string_view input) { SameInPieces(input, ReadHttp1<Http1Parser::Role::kResponse>); }
void Spdy(std::string_view input) { SameInPieces(input, ReadSpdy); }
void WebSocket(std::string_view input) {
  SameInPieces(input, ReadWebSocket);
  SameInPieces(input, ReadChannels<false>);
  SameInPieces(input, ReadChannels<true>);
}

const Registration kRequest("http1_request", Http1Request), kResponse("http1_response", Http1Response),
    kSpdy("spdy", Spdy), kWebSocket("websocket", WebSocket);

}  // namespace
}  // namespace keelson::fuzz
