// The texts of the console in Korean, by page. A key is on one line; `{name}` is a value, `{one, other}` are plural categories.

export default {
  // language
  "language.name": "한국어",

  // common: dialogs, forms, tables, numbers, errors
  "common.cancel": "취소",
  "common.close_message": "알림 닫기",
  "common.type_to_go_on": "계속하려면 {name} 입력",
  "common.reason": "사유",
  "common.reason_hint": "비워 둘 수 있습니다. {who}",
  "common.reason_kept": "감사 로그에 남습니다.",
  "common.needed": "필수 항목입니다.",
  "common.more": "더 보기",
  "common.shown": "{n}개 표시",
  "common.request": "요청 {id}",
  "common.answered": "서버 응답: {status}",
  "common.unreachable": "서버에 연결할 수 없습니다. 다시 연결하는 중입니다.",
  "common.no_answer": "서버가 응답하지 않았습니다",
  "common.no_answer_change": "처리 여부를 알 수 없습니다. 서버가 복구되면 같은 작업을 다시 실행하세요. 한 번만 적용됩니다.",
  "unit.longest": "10초 초과",
  "unit.seconds": "{seconds}초",
  "unit.minutes": "{minutes}분 {seconds}초",
  "unit.hours": "{hours}시간 {minutes}분",
  "unit.days": "{days}일 {hours}시간",
  "error.unauthorized": "API 키가 필요합니다",
  "error.forbidden": "권한이 없습니다",
  "error.invalid_field": "입력값이 올바르지 않습니다",
  "error.invalid_parameter": "조회 조건이 올바르지 않습니다",
  "error.not_found": "대상을 찾을 수 없습니다",
  "error.leaderboard_not_found": "리더보드를 찾을 수 없습니다",
  "error.period_not_found": "기간을 찾을 수 없습니다",
  "error.period_closed": "이미 마감된 기간입니다",
  "error.player_not_found": "플레이어를 찾을 수 없습니다",
  "error.player_not_ranked": "이 리더보드에 순위가 없는 플레이어입니다",
  "error.member_not_found": "회원을 찾을 수 없습니다",
  "error.member_closed": "해지된 회원입니다",
  "error.contest_not_found": "대회를 찾을 수 없습니다",
  "error.contest_exists": "같은 ID의 대회가 이미 있습니다",
  "error.contest_state": "현재 대회 상태에서는 할 수 없습니다",
  "error.contest_full": "대회 정원이 찼습니다",
  "error.series_not_found": "시리즈를 찾을 수 없습니다",
  "error.series_exists": "같은 ID의 시리즈가 이미 있습니다",
  "error.invalid_applications": "유효하지 않은 참가 신청이 있습니다",
  "error.definition_conflict": "같은 이름의 리더보드가 다른 설정으로 이미 있습니다",
  "error.invalid_definition": "리더보드 설정이 올바르지 않습니다",
  "error.reserved_name": "사용할 수 없는 이름입니다",
  "error.insufficient_funds": "잔액이 부족합니다",
  "error.limit_exceeded": "한도를 초과했습니다",
  "error.mint_cap_reached": "이 키의 일일 발행 한도에 도달했습니다",
  "error.invalid_amount": "금액이 올바르지 않습니다",
  "error.transaction_not_found": "거래를 찾을 수 없습니다",
  "error.not_reversible": "되돌릴 수 없는 거래입니다",
  "error.exceeds_reversible": "되돌릴 수 있는 금액을 초과했습니다",
  "error.hold_not_found": "보류를 찾을 수 없습니다",
  "error.hold_resolved": "이미 처리된 보류입니다",
  "error.exceeds_hold": "보류 금액을 초과했습니다",
  "error.login_taken": "이미 사용 중인 로그인 ID입니다",
  "error.phone_taken": "이미 사용 중인 전화번호입니다",
  "error.player_taken": "이미 다른 회원에 연결된 플레이어입니다",
  "error.last_admin_key": "마지막 관리자 키입니다",
  "error.key_not_found": "키를 찾을 수 없습니다",
  "error.webhook_not_found": "웹훅을 찾을 수 없습니다",
  "error.payload_too_large": "보낸 데이터가 너무 큽니다",
  "error.too_many_attempts": "시도 횟수를 초과했습니다. 잠시 후 다시 시도하세요",
  "error.overloaded": "서버가 혼잡합니다. 다시 시도하세요",
  "error.store_away": "저장소를 사용할 수 없습니다. 처리되지 않았습니다",
  "error.outcome_unknown": "처리 결과를 알 수 없습니다. 같은 작업을 다시 실행하세요. 한 번만 적용됩니다",
  "error.loading": "순위를 준비하는 중입니다",
  "error.internal": "서버 오류입니다",

  // app: frame, key, theme, languages
  "app.skip": "본문으로 건너뛰기",
  "app.navigation": "콘솔",
  "app.not_found": "페이지를 찾을 수 없습니다",
  "app.to_overview": "개요로 이동",
  "app.key": "키 {key}",
  "app.no_key": "키 없음",
  "app.change_theme": "{now}. 바꾸기: {next}",
  "app.forget_key": "키 지우기",
  "app.enter_key": "키 입력",
  "app.key_forgotten": "키를 지웠습니다",
  "app.key_needed": "API 키 필요",
  "app.api_key": "API 키",
  "app.key_kept": "이 탭에만 보관되며, 탭을 닫으면 사라집니다.",
  "app.paste_key": "API 키를 붙여 넣으세요. 콘솔은 모든 요청에 이 키를 보냅니다.",
  "app.protected_mode": "보호 모드: 아직 API 키가 없습니다. 서버에서 `tally keys create --role admin` 명령으로 만드세요.",
  "app.key_unknown": "이 탭의 키는 알 수 없거나 폐기된 키입니다.",
  "app.no_api_key": "API 키가 아닙니다. 키는 `tally_`로 시작합니다. 발급할 때 표시된 줄 전체를 복사하세요.",
  "app.use_key": "이 키 사용",
  "app.guide": "가이드",
  "app.not_ready": "준비 중: {phase}. 순위가 정확해질 때까지 표시하지 않습니다.",
  "nav.overview": "개요",
  "nav.boards": "리더보드",
  "nav.contests": "대회",
  "nav.players": "플레이어",
  "nav.wallets": "지갑",
  "nav.settings": "설정",
  "theme.system": "시스템 테마",
  "theme.light": "밝은 테마",
  "theme.dark": "어두운 테마",
  "phase.opening": "여는 중",
  "phase.loading": "불러오는 중",
  "phase.building": "순위 구성 중",
  "phase.reloading": "다시 불러오는 중",
  "phase.lease": "저장소 사용권 확인 중",
  "phase.draining": "종료 중",
  "phase.demo": "데모 생성 중",

  // overview

  // server

  // warnings

  // boards

  // board: one leaderboard with its tabs

  // periods: periods and their prizes

  // players

  // player: one player

  // contests
  "contests.row_from": "시작 순위",
  "contests.row_to": "끝 순위",
  "contests.row_amount": "순위당 금액",
  "contests.row_share": "순위당 비율(%)",
  "contests.row_currency": "통화",
  "contests.row_remove_head": "삭제",
  "contests.row_remove": "{n}번째 상금 삭제",
  "contests.row_remove_share": "{n}번째 배분 삭제",
  "contests.row_input": "{name}, {n}번째 상금",
  "contests.row_input_share": "{name}, {n}번째 배분",
  "contests.row_add": "상금 추가",
  "contests.row_add_share": "배분 추가",
  "contests.row_total": "합계 {total}",
  "contests.row_wrong_from": "{n}번째 줄: 시작 순위는 1 이상의 정수여야 합니다.",
  "contests.row_wrong_to": "{n}번째 줄: 끝 순위는 시작 순위보다 작지 않은 정수여야 합니다.",
  "contests.row_wrong_amount": "{n}번째 줄: 금액은 1 이상의 정수여야 합니다.",
  "contests.row_wrong_share": "{n}번째 줄: 비율은 소수점 둘째 자리까지의 퍼센트여야 합니다.",

  // contest: one contest

  // series

  // wallets: members, their list, currencies

  // wallet: one member

  // owed

  // settings: settings, keys

  // audit

  // webhooks
};
