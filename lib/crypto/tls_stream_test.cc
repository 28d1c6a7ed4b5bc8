#include "lib/crypto/tls_stream.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/fd.h"
#include "lib/crypto/testing/test_pki.h"
#include "lib/crypto/tls_objects.h"

namespace keelson::crypto {
namespace {

using Io = TlsStream::Io;

class TlsStreamTest : public testing::Test {
 protected:
  TlsStreamTest() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) abort();
    server_end_.Reset(ends[0]);
    client_end_.Reset(ends[1]);
    server_options_ = {pki_.server_cert_file(), pki_.server_key_file(), pki_.ca_file()};
    client_options_.ca_pem = pki_.ca_pem();
  }

  void Open(const std::string& name = "localhost", bool http2 = true) {
    server_ = *TlsStream::Accept(**TlsContext::ForServer(server_options_), server_end_.get());
    client_ =
        *TlsStream::Connect(**TlsContext::ForClient(client_options_, http2), client_end_.get(), name, true);
  }
  // How the handshake ends for the client and the server.
  std::pair<Io, Io> Handshake() {
    Io client = Io::kWantRead, server = Io::kWantRead;
    for (int i = 0; i < 10; ++i) {
      if (client == Io::kWantRead) client = client_->Handshake();
      if (server == Io::kWantRead) server = server_->Handshake();
    }
    return {client, server};
  }
  static std::string ReadOnce(TlsStream& stream) {
    char buffer[64];
    size_t count = 0;
    return stream.Read(buffer, sizeof buffer, count) == Io::kDone ? std::string(buffer, count) : "";
  }

  TestPki pki_;
  UniqueFd server_end_, client_end_;
  TlsServerOptions server_options_;
  TlsClientOptions client_options_;
  std::unique_ptr<TlsStream> server_, client_;
};

TEST_F(TlsStreamTest, CarriesBytesBothWaysUntilOneEnds) {
  Open();
  ASSERT_EQ(Handshake(), std::pair(Io::kDone, Io::kDone));
  char buffer[8];
  size_t count = 0;
  EXPECT_EQ(server_->Read(buffer, sizeof buffer, count), Io::kWantRead);
  ASSERT_EQ(client_->Write("ping", count), Io::kDone);
  EXPECT_EQ(count, 4u);
  EXPECT_EQ(ReadOnce(*server_), "ping");
  client_->Shutdown();
  EXPECT_EQ(server_->Read(buffer, sizeof buffer, count), Io::kEnd);
  ASSERT_EQ(server_->Write("pong", count), Io::kDone) << "the other direction still works";
  EXPECT_EQ(ReadOnce(*client_), "pong");
}

TEST_F(TlsStreamTest, TellsWhoThePeerIs) {
  TestCertificate own = pki_.Client("alice", {"staff"});
  client_options_.certificate_pem = own.certificate_pem;
  client_options_.key_pem = own.key_pem;
  Open();
  ASSERT_EQ(Handshake(), std::pair(Io::kDone, Io::kDone));
  ASSERT_TRUE(server_->VerifiedPeer());
  EXPECT_EQ(server_->VerifiedPeer()->common_name, "alice");
  EXPECT_TRUE(server_->HasShownCertificate());
}

TEST_F(TlsStreamTest, ReadsTheUidOfAPeer) {
  const std::string oid = "1.3.6.1.4.1.57683.2";
  constexpr int kBitString = 3, kPrintableString = 19;
  struct Case {
    std::vector<SubjectAttribute> subject;
    const char *uid, *problem;
  };
  const std::vector<Case> cases = {
      {{}, "", ""},
      {{{"0.9.2342.19200300.100.1.1", "another attribute"}}, "", ""},
      {{{oid, "u-1"}}, "u-1", ""},
      {{{oid, "1042", kPrintableString}}, "1042", ""},
      {{{oid, "u-1"}, {oid, "u-2"}}, "u-2", "expected 1 UID, but found multiple"},
      {{{oid, "u-1", kBitString}}, "", "unable to parse UID into a string"},
      {{{oid, ""}}, "", "UID cannot be an empty string"},
  };
  for (const Case& c : cases) {
    const TestCertificate own =
        pki_.Client("alice", {}, std::chrono::minutes(-1), std::chrono::hours(1), c.subject);
    const std::unique_ptr<BIO, int (*)(BIO*)> pem(BIO_new_mem_buf(own.certificate_pem.data(), -1), BIO_free);
    const std::unique_ptr<X509, void (*)(X509*)> certificate(
        PEM_read_bio_X509(pem.get(), nullptr, nullptr, nullptr), X509_free);
    const PeerCertificate peer = Describe(certificate.get());
    EXPECT_EQ(peer.uid, c.uid);
    EXPECT_EQ(peer.uid_problem, c.problem);
    EXPECT_EQ(peer.NamesUser(std::chrono::system_clock::now()), *c.problem == '\0');
  }
}

TEST_F(TlsStreamTest, RemembersACertificateThatDoesNotVerify) {
  TestPki stranger;
  TestCertificate own = stranger.Client("alice", {});
  client_options_.certificate_pem = own.certificate_pem;
  client_options_.key_pem = own.key_pem;
  Open();
  ASSERT_EQ(Handshake(), std::pair(Io::kDone, Io::kDone));
  EXPECT_FALSE(server_->VerifiedPeer());
  EXPECT_TRUE(server_->HasShownCertificate());
}

TEST_F(TlsStreamTest, AgreesOnAProtocol) {
  struct Case {
    bool http2;
    std::vector<std::string> served;
    const char* agreed;
  };
  for (const Case& c : {Case{true, {"h2", "http/1.1"}, "h2"}, Case{false, {"h2", "http/1.1"}, "http/1.1"},
                        Case{true, {"http/1.1"}, "http/1.1"}, Case{true, {}, ""}}) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    server_end_.Reset(ends[0]);
    client_end_.Reset(ends[1]);
    server_options_.alpn = c.served;
    Open("localhost", c.http2);
    ASSERT_EQ(Handshake(), std::pair(Io::kDone, Io::kDone));
    EXPECT_EQ(client_->NegotiatedProtocol(), c.agreed);
    EXPECT_EQ(server_->NegotiatedProtocol(), c.agreed);
    EXPECT_FALSE(server_->HasShownCertificate());
  }
}

TEST_F(TlsStreamTest, ClientSaysWhyACertificateDoesNotVerify) {
  Open("other.example");
  EXPECT_EQ(Handshake().first, Io::kFailed);
  EXPECT_EQ(client_->error_text(), "hostname mismatch");
  EXPECT_EQ(client_->error_number(), 0);
  EXPECT_EQ(client_->plain_http(), TlsStream::PlainHttp::kNo);
}

TEST_F(TlsStreamTest, NoticesPlainHttp) {
  Open();
  ASSERT_GT(write(client_end_.get(), "GET / HTTP/1.1\r\n\r\n", 18), 0);
  EXPECT_EQ(server_->Handshake(), Io::kFailed);
  EXPECT_EQ(server_->plain_http(), TlsStream::PlainHttp::kRequests);
  ASSERT_GT(write(server_end_.get(), "HTTP/1.1 400 Bad Request\r\n\r\n", 28), 0);
  EXPECT_EQ(client_->Handshake(), Io::kFailed);
  EXPECT_EQ(client_->plain_http(), TlsStream::PlainHttp::kResponds);
}

TEST_F(TlsStreamTest, APeerThatGoesInTheMiddleIsAFailure) {
  Open();
  EXPECT_EQ(client_->Handshake(), Io::kWantRead);
  server_end_.Reset();
  EXPECT_EQ(client_->Handshake(), Io::kFailed);
}

}  // namespace
}  // namespace keelson::crypto
