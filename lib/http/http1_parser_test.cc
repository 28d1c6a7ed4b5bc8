#include "lib/http/http1_parser.h"

#include <gtest/gtest.h>

namespace keelson::http {
namespace {

struct Read {
  Result<> result;
  bool done = false;
  int status = 0;
  std::string type, body;
};

// Feeds like a connection: `step` bytes arrive at a time, and unconsumed bytes are offered again.
Read ReadResponse(std::string_view bytes, size_t step, Http1Parser::Limits limits = {}) {
  Read read;
  Http1Parser parser(Http1Parser::Role::kResponse, limits,
                     [&](std::string_view piece) { read.body += piece; });
  std::string waiting;
  for (size_t at = 0; at < bytes.size() && !parser.done(); at += step) {
    waiting += bytes.substr(at, step);
    for (;;) {
      Result<size_t> taken = parser.Feed(waiting);
      if (!taken) {
        read.result = taken.error();
        return read;
      }
      waiting.erase(0, *taken);
      if (*taken == 0 || waiting.empty()) break;
    }
  }
  read.done = parser.done();
  read.status = parser.head().status;
  read.type = std::string(parser.head().headers.Get("Content-Type"));
  return read;
}

TEST(Http1ParserTest, LinesOfResponsesMayEndInLineFeedAlone) {
  const std::string_view kResponses[] = {
      "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\na\nb\nc",
      "HTTP/1.1 200 OK\nContent-Type: text/plain\nContent-Length: 5\n\na\nb\nc",
      "HTTP/1.1 200 OK\r\nContent-Type: text/plain\nContent-Length: 5\n\r\na\nb\nc",
  };
  for (std::string_view response : kResponses) {
    for (size_t step : {size_t{1}, size_t{7}, response.size()}) {
      Read read = ReadResponse(response, step);
      ASSERT_TRUE(read.result) << read.result.error().message();
      EXPECT_TRUE(read.done) << response;
      EXPECT_EQ(read.status, 200);
      EXPECT_EQ(read.type, "text/plain");
      EXPECT_EQ(read.body, "a\nb\nc");
    }
  }
}

TEST(Http1ParserTest, WhatIsNoResponseIsSeenAtOnce) {
  EXPECT_FALSE(ReadResponse("SSH-2.0-OpenSSH_9.2\r\n", 4).result);
  EXPECT_FALSE(ReadResponse("HTTP/1.1 abc\n\n", 3).result);
  EXPECT_FALSE(ReadResponse("HTTP/1.1 200 OK\nno colon\n\n", 100).result);
  EXPECT_FALSE(ReadResponse("HTTP/1.1 200 OK\nX: " + std::string(2000, 'x'), 100, {.head = 1000}).result);
}

TEST(Http1ParserTest, EmptyChunkedBodiesMayComeByteByByte) {
  Http1Parser parser(Http1Parser::Role::kRequest, {}, [](std::string_view) { FAIL() << "there is no body"; });
  std::string pending;
  for (char c : std::string("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")) {
    ASSERT_FALSE(parser.done());
    pending += c;
    Result<size_t> used = parser.Feed(pending);
    ASSERT_TRUE(used) << used.error().message();
    pending.erase(0, *used);
  }
  EXPECT_TRUE(parser.done());
}

TEST(Http1ParserTest, RequestsMayNot) {
  Http1Parser parser(Http1Parser::Role::kRequest, {}, [](std::string_view) {});
  EXPECT_FALSE(parser.Feed("GET / HTTP/1.1\nHost: a\n\n"));
}

}  // namespace
}  // namespace keelson::http
