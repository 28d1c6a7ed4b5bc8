#include "lib/http/streaming/spdy.h"

#include <stdlib.h>
#include <zlib.h>

#include <algorithm>

namespace keelson::http {
namespace {

enum : uint16_t { kSynStream = 1, kSynReply = 2, kRstStream = 3, kPing = 6, kGoAway = 7, kHeaders = 8 };
constexpr uint8_t kFin = 1;
constexpr size_t kMaxData = 0xffffff;
constexpr size_t kControlKept = 8;  // no event needs more

void Append32(std::string& out, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xff);
}

uint32_t Read32(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

void ControlHead(std::string& out, uint16_t type, uint8_t flags, size_t length) {
  Append32(out, 0x80030000u | type);
  Append32(out, static_cast<uint32_t>(flags) << 24 | static_cast<uint32_t>(length));
}

// SPDY draft 3, section 2.6.10.1: words with their lengths, then text without lengths.
std::string MakeDictionary() {
  static constexpr const char* kWords[] = {"options",
                                           "head",
                                           "post",
                                           "put",
                                           "delete",
                                           "trace",
                                           "accept",
                                           "accept-charset",
                                           "accept-encoding",
                                           "accept-language",
                                           "accept-ranges",
                                           "age",
                                           "allow",
                                           "authorization",
                                           "cache-control",
                                           "connection",
                                           "content-base",
                                           "content-encoding",
                                           "content-language",
                                           "content-length",
                                           "content-location",
                                           "content-md5",
                                           "content-range",
                                           "content-type",
                                           "date",
                                           "etag",
                                           "expect",
                                           "expires",
                                           "from",
                                           "host",
                                           "if-match",
                                           "if-modified-since",
                                           "if-none-match",
                                           "if-range",
                                           "if-unmodified-since",
                                           "last-modified",
                                           "location",
                                           "max-forwards",
                                           "pragma",
                                           "proxy-authenticate",
                                           "proxy-authorization",
                                           "range",
                                           "referer",
                                           "retry-after",
                                           "server",
                                           "te",
                                           "trailer",
                                           "transfer-encoding",
                                           "upgrade",
                                           "user-agent",
                                           "vary",
                                           "via",
                                           "warning",
                                           "www-authenticate",
                                           "method",
                                           "get",
                                           "status",
                                           "200 OK",
                                           "version",
                                           "HTTP/1.1",
                                           "url",
                                           "public",
                                           "set-cookie",
                                           "keep-alive",
                                           "origin"};
  std::string out;
  for (std::string_view word : kWords) {
    Append32(out, static_cast<uint32_t>(word.size()));
    out += word;
  }
  out +=
      "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
      "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized"
      "403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
      "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
      "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,"
      "text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";
  return out;
}

}  // namespace

std::string_view SpdyDictionary() {
  static const std::string dictionary = MakeDictionary();
  return dictionary;
}

struct SpdyWriter::Deflater {
  Deflater() {
    // A small window: header blocks of a handful of streams do not need 256 KB.
    if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 11, 1, Z_DEFAULT_STRATEGY) != Z_OK) abort();
    std::string_view dictionary = SpdyDictionary();
    deflateSetDictionary(&stream, reinterpret_cast<const Bytef*>(dictionary.data()),
                         static_cast<uInt>(dictionary.size()));
  }
  ~Deflater() { deflateEnd(&stream); }

  std::string Compress(std::string& plain) {
    std::string out(deflateBound(&stream, plain.size()) + 64, '\0');
    stream.next_in = reinterpret_cast<Bytef*>(plain.data());
    stream.avail_in = static_cast<uInt>(plain.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    deflate(&stream, Z_SYNC_FLUSH);
    out.resize(out.size() - stream.avail_out);
    return out;
  }
  z_stream stream{};
};

SpdyWriter::SpdyWriter() : deflater_(std::make_unique<Deflater>()) {}
SpdyWriter::~SpdyWriter() = default;

void SpdyWriter::SynStream(std::string& out, uint32_t stream, const Headers& headers) {
  std::string block;
  uint32_t count = 0;
  for ([[maybe_unused]] const auto& item : headers) ++count;
  Append32(block, count);
  for (const auto& [name, value] : headers) {
    Append32(block, static_cast<uint32_t>(name.size()));
    block += name;
    Append32(block, static_cast<uint32_t>(value.size()));
    block += value;
  }
  std::string compressed = deflater_->Compress(block);
  ControlHead(out, kSynStream, 0, 10 + compressed.size());
  Append32(out, stream);
  Append32(out, 0);     // no associated stream
  out.append(2, '\0');  // priority, slot
  out += compressed;
}

void SpdyWriter::Data(std::string& out, uint32_t stream, std::string_view bytes, bool fin) {
  do {
    std::string_view part = bytes.substr(0, kMaxData);
    bytes.remove_prefix(part.size());
    Append32(out, stream);
    Append32(out, (fin && bytes.empty() ? static_cast<uint32_t>(kFin) << 24 : 0) |
                      static_cast<uint32_t>(part.size()));
    out += part;
  } while (!bytes.empty());
}

void SpdyWriter::RstStream(std::string& out, uint32_t stream, uint32_t status) {
  ControlHead(out, kRstStream, 0, 8);
  Append32(out, stream);
  Append32(out, status);
}

void SpdyWriter::Ping(std::string& out, uint32_t id) {
  ControlHead(out, kPing, 0, 4);
  Append32(out, id);
}

void SpdyWriter::GoAway(std::string& out, uint32_t last_stream, uint32_t status) {
  ControlHead(out, kGoAway, 0, 8);
  Append32(out, last_stream);
  Append32(out, status);
}

Result<> SpdyParser::Feed(std::string_view bytes) {
  while (!bytes.empty()) {
    if (!in_frame_) {
      size_t taken = std::min<size_t>(8 - head_.size(), bytes.size());
      head_.append(bytes.substr(0, taken));
      bytes.remove_prefix(taken);
      if (head_.size() < 8) return {};
      KEELSON_RETURN_IF_ERROR(BeginFrame());
    }
    size_t taken = std::min<size_t>(left_, bytes.size());
    std::string_view part = bytes.substr(0, taken);
    bytes.remove_prefix(taken);
    left_ -= static_cast<uint32_t>(taken);
    bool done = left_ == 0;
    if (is_control_) {
      if (control_.size() < kControlKept) control_.append(part.substr(0, kControlKept - control_.size()));
    } else if (!part.empty() || done) {
      events_.on_data(stream_, part, done && (flags_ & kFin));
    }
    if (!done) return {};
    in_frame_ = false;
    if (is_control_) EndControl();
  }
  return {};
}

Result<> SpdyParser::BeginFrame() {
  uint32_t first = Read32(head_, 0), second = Read32(head_, 4);
  head_.clear();
  control_.clear();
  in_frame_ = true;
  is_control_ = first >> 31;
  flags_ = static_cast<uint8_t>(second >> 24);
  left_ = second & 0xffffff;
  if (is_control_) {
    if ((first >> 16 & 0x7fff) != 3) return Error(Code::kUnavailable, "SPDY: frame of another version");
    type_ = static_cast<uint16_t>(first & 0xffff);
  } else {
    stream_ = first;
  }
  return {};
}

void SpdyParser::EndControl() {
  uint32_t first = control_.size() >= 4 ? Read32(control_, 0) : 0;
  uint32_t stream = first & 0x7fffffff;
  switch (type_) {
    case kSynReply:
      events_.on_reply(stream);
      [[fallthrough]];
    case kHeaders:
      if (flags_ & kFin) events_.on_data(stream, {}, true);
      break;
    case kRstStream:
      events_.on_reset(stream);
      break;
    case kPing:
      events_.on_ping(first);
      break;
    case kGoAway:
      events_.on_goaway();
      break;
    default:  // SETTINGS, WINDOW_UPDATE, and streams that the server opens
      break;
  }
}

}  // namespace keelson::http
