// Beast asserts that the end of a chunked body is at least five bytes long. For an empty body it can be
// four when the peer sends byte by byte, which must not end the process. Only the assertion is wrong.
#define BOOST_DISABLE_ASSERTS

#include "lib/http/http1_parser.h"

#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/none.hpp>

namespace keelson::http {

namespace beast = boost::beast;
using ErrorCode = boost::system::error_code;

struct Http1Parser::Base {
  virtual ~Base() = default;
  virtual size_t Put(std::string_view bytes, ErrorCode& error) = 0;
  virtual void PutEof(ErrorCode& error) = 0;
  virtual void Skip() = 0;
  virtual bool HeadDone() const = 0;
  virtual bool Done() const = 0;
  MessageHead head;
  bool started = false;
  bool head_too_large = false;
};

template <bool is_request>
struct Http1Parser::Impl final : Base, beast::http::basic_parser<is_request> {
  using Parser = beast::http::basic_parser<is_request>;
  using StringView = beast::string_view;

  Impl(const Limits& limits, const std::function<void(std::string_view)>& body,
       const std::function<bool(const MessageHead&)>& lifts_limit)
      : on_body(body), lifts(lifts_limit), body_left(limits.body) {
    Parser::eager(true);
    Parser::header_limit(limits.head);
    Parser::body_limit(boost::none);  // counted here: Beast decides before anybody can see the head
  }

  size_t Put(std::string_view bytes, ErrorCode& error) override {
    return Parser::put(boost::asio::buffer(bytes.data(), bytes.size()), error);
  }
  void PutEof(ErrorCode& error) override { Parser::put_eof(error); }
  void Skip() override { Parser::skip(true); }
  bool HeadDone() const override { return Parser::is_header_done(); }
  bool Done() const override { return Parser::is_done(); }

  void on_request_impl(beast::http::verb, StringView method, StringView target, int version,
                       ErrorCode&) override {
    head.method.assign(method.data(), method.size());
    head.target.assign(target.data(), target.size());
    head.version = version;
  }
  void on_response_impl(int code, StringView, int version, ErrorCode&) override {
    head.status = code;
    head.version = version;
  }
  void on_field_impl(beast::http::field, StringView name, StringView value, ErrorCode&) override {
    head.headers.Add(std::string(name.data(), name.size()), std::string(value.data(), value.size()));
  }
  void on_header_impl(ErrorCode& error) override {
    head.keep_alive = Parser::keep_alive();
    head.upgrade = Parser::upgrade();
    head.chunked = Parser::chunked();
    if (Parser::content_length()) head.content_length = *Parser::content_length();
    if (lifts && lifts(head)) body_left = UINT64_MAX;
    if (head.content_length.value_or(0) > body_left) error = beast::http::error::body_limit;
  }
  void on_body_init_impl(const boost::optional<std::uint64_t>&, ErrorCode&) override {}
  std::size_t on_body_impl(StringView body, ErrorCode& error) override {
    if (body.size() > body_left) {
      error = beast::http::error::body_limit;
      return 0;
    }
    body_left -= body.size();
    on_body({body.data(), body.size()});
    return body.size();
  }
  void on_chunk_header_impl(std::uint64_t, StringView, ErrorCode&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, StringView body, ErrorCode& error) override {
    return on_body_impl(body, error);
  }
  void on_finish_impl(ErrorCode&) override {}

  const std::function<void(std::string_view)>& on_body;
  const std::function<bool(const MessageHead&)>& lifts;
  uint64_t body_left;  // of the limit
};

namespace {

// The length of a message head with its empty line; lines end in CR LF or LF alone. 0: the head is
// incomplete.
size_t HeadLength(std::string_view bytes) {
  for (size_t lf = bytes.find('\n'); lf != std::string_view::npos; lf = bytes.find('\n', lf + 1)) {
    std::string_view next = bytes.substr(lf + 1, 2);
    if (next.starts_with('\n')) return lf + 2;
    if (next == "\r\n") return lf + 3;
  }
  return 0;
}

std::string WithCrLf(std::string_view head) {
  std::string out;
  char before = 0;
  for (char c : head) {
    if (c == '\n' && before != '\r') out += '\r';
    out += before = c;
  }
  return out;
}

}  // namespace

Http1Parser::Http1Parser(Role role, Limits limits, std::function<void(std::string_view)> on_body)
    : role_(role), limits_(limits), on_body_(std::move(on_body)), impl_(Make()) {}
Http1Parser::~Http1Parser() = default;

std::unique_ptr<Http1Parser::Base> Http1Parser::Make() const {
  if (role_ == Role::kRequest) return std::make_unique<Impl<true>>(limits_, on_body_, lifts_);
  return std::make_unique<Impl<false>>(limits_, on_body_, lifts_);
}

void Http1Parser::SkipBody() { impl_->Skip(); }

// Shell scripts and small servers end lines with LF alone. Clients may accept that (RFC 9112, 2.2), but
// Beast does not. Our server rejects it in requests: request smuggling exploits text that two parsers read
// differently.
Result<size_t> Http1Parser::FeedResponseHead(std::string_view bytes) {
  impl_->started = true;
  if (!std::string_view("HTTP/").starts_with(bytes.substr(0, 5))) {
    return Error(Code::kBadRequest, "malformed HTTP message: no HTTP version");
  }
  size_t length = HeadLength(bytes);
  if (length == 0 && bytes.size() <= limits_.head) return size_t{0};
  ErrorCode error;
  std::string head = WithCrLf(bytes.substr(0, length == 0 ? bytes.size() : length));
  impl_->Put(head, error);
  if (error && error != beast::http::error::need_more) {
    impl_->head_too_large = error == beast::http::error::header_limit;
    return Error(Code::kBadRequest, "malformed HTTP message: " + error.message());
  }
  return length;
}

Result<size_t> Http1Parser::Feed(std::string_view bytes) {
  size_t taken = 0;
  if (role_ == Role::kResponse && !impl_->HeadDone() && !bytes.empty()) {
    KEELSON_ASSIGN_OR_RETURN(taken, FeedResponseHead(bytes));
    if (taken == 0) return taken;
  }
  while (!impl_->Done() && taken < bytes.size()) {
    impl_->started = true;
    ErrorCode error;
    size_t n = impl_->Put(bytes.substr(taken), error);
    taken += n;
    if (error == beast::http::error::need_more) break;
    if (error == beast::http::error::body_limit) return Error(Code::kTooLarge, "request body too large");
    if (error) {
      impl_->head_too_large = error == beast::http::error::header_limit;
      return Error(Code::kBadRequest, "malformed HTTP message: " + error.message());
    }
    if (n == 0) break;
  }
  return taken;
}

Result<> Http1Parser::End() {
  ErrorCode error;
  if (impl_->started) impl_->PutEof(error);
  if (error || !impl_->Done()) return Error(Code::kUnavailable, "connection closed inside an HTTP message");
  return {};
}

bool Http1Parser::head_done() const { return impl_->HeadDone(); }
bool Http1Parser::done() const { return impl_->Done(); }
bool Http1Parser::started() const { return impl_->started; }
bool Http1Parser::HeadTooLarge() const { return impl_->head_too_large; }
MessageHead& Http1Parser::head() { return impl_->head; }
void Http1Parser::Reset() { impl_ = Make(); }

}  // namespace keelson::http
